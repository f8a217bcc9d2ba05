"""The engine behind HTTP: OpenAI's API passed through, samples scored, numbers shown."""
