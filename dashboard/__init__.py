"""The dashboard: shows what the engine computed."""
