"""Why variants differ: the resources that server, processes and machine used per transaction. Reads only
stored records.
"""
