"""Export as JavaScript: a module for each part writes it as plain values."""
