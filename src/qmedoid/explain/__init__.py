"""One decision to look at: an object with sentences, pictures, the nearest rows and the nearest flip."""
