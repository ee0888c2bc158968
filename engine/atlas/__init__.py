"""What is done with embeddings of models: relations, pictures, stability; arrays in, arrays out."""
