"""What a person asks for: settings, options, constraints, and the rule for ρ."""
