"""HTML and SVG as text: escaping, elements, tables, charts, and the policy of a page that runs no foreign script."""
