"""`python -m noisegen`."""

from noisegen.cli import main

if __name__ == "__main__":
    main()
