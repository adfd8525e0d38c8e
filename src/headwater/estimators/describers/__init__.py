"""What models say of themselves: descriptions, tables, the evidence of their health, odd rows."""
