"""Recomputes the total batches of trials whose workers' samples, in seconds, had been counted as batches."""

from alembic import op

revision = "0006"
down_revision = "0005"

# If retention has dropped all training reports, the existing value is the best available.
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
    """Earlier releases continue from the existing values."""
