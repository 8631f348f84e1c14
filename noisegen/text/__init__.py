"""Text: Arrow buffers, words, case, graphemes, languages and their tokenizers, distances."""
