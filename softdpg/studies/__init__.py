"""What the command runs as a whole: reproduction, toy, demo."""
