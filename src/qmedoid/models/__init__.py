"""What a fit leaves behind: frozen arrays that can decide (algorithms 8, 13 and 17)."""
