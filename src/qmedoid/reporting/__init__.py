"""From tables and curves to what people look at: CSV files, pictures and one page of HTML."""
