"""What comes in: checked, counted, mapped by name; a rejected message changes nothing."""
