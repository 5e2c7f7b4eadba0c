"""A saved model as one page: a summary of plain values, coded findings, and the page that shows them."""
