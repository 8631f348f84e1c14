"""Mining of real errors from revision histories, corrected learner text and parallel text."""
