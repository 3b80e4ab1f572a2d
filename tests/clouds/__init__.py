"""Servers on loopback that speak what Google Cloud Storage and Azure Blob Storage speak, as far as that is used."""
