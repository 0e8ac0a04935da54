"""Ray jobs: submission, attempts, and the records that outlive the head."""
