"""A fitted model in other languages: JavaScript, SQL and ONNX."""
