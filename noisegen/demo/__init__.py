"""`noisegen quickstart`: from text that an installed package ships to a student and its report."""
