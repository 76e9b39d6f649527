"""What a replay's hits are worth: service times, harmful hits, demand, wear and money.

Everything here is arithmetic over what a replay recorded; nothing of it reaches back into a hit.
"""
