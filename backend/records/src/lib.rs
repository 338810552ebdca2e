//! What a hub writes down of people, teams, keys and agents.
