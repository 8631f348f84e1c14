# The core:               docker build -t noisegen .
# With training on CPUs:  docker build -t noisegen:train --build-arg EXTRAS=train .
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/data" noisegen augment news.txt -o out
FROM python:3.13-slim
ARG EXTRAS=
WORKDIR /src
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY noisegen noisegen
RUN pip install --no-cache-dir -c constraints.txt ".${EXTRAS:+[$EXTRAS]}" \
    && useradd --create-home noisegen
USER noisegen
WORKDIR /data
ENTRYPOINT ["noisegen"]
