"""Real noise: pairs and dictionaries mined from revision histories, learner text, parallel text."""
