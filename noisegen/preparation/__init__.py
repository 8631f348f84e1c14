"""Turn raw web or social text into clean sentences."""
