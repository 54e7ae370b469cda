"""Total batches of trials whose workers' samples, which count seconds, had been taken for batches."""

from alembic import op

revision = "0006"
down_revision = "0005"

# Where retention has dropped all reports of the training nothing better is known than what is there.
COUNT_ANEW = """
UPDATE trials SET total_batches = counted.steps FROM (
    SELECT strands.trial_id AS id, MAX(chunks.last_steps) AS steps FROM chunks
    JOIN strands ON strands.id = chunks.strand_id
    WHERE strands.kind NOT LIKE 'profile.%'
    AND strands.trial_id IN (SELECT trial_id FROM strands WHERE kind LIKE 'profile.%')
    GROUP BY strands.trial_id
) AS counted WHERE trials.trial_id = counted.id
"""


def upgrade() -> None:
    op.execute(COUNT_ANEW)


def downgrade() -> None:
    """Releases before this one count on from what is here."""
