"""The dashboard's page: HTML, style and scripts as they are served, without a build step and without anything from elsewhere."""
