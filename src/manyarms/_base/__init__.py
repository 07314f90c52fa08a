"""Internal: small pieces on plain arrays, validation and storage that every package stands on."""
