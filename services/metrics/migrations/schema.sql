CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE chunks (
	id BIGINT NOT NULL, 
	strand_id BIGINT NOT NULL, 
	level SMALLINT NOT NULL, 
	archived BOOLEAN NOT NULL, 
	reports INTEGER NOT NULL, 
	names INTEGER NOT NULL, 
	first_steps BIGINT NOT NULL, 
	last_steps BIGINT NOT NULL, 
	first_at BIGINT NOT NULL, 
	last_at BIGINT NOT NULL, 
	marks BLOB, 
	frame BLOB NOT NULL, 
	body BLOB, 
	PRIMARY KEY (id)
);
CREATE TABLE columns (
	chunk_id BIGINT NOT NULL, 
	place INTEGER NOT NULL, 
	cells BLOB NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (chunk_id, place)
);
CREATE TABLE log_chunks (
	first_id BIGINT NOT NULL, 
	last_id BIGINT NOT NULL, 
	task_id VARCHAR NOT NULL, 
	tier INTEGER NOT NULL, 
	weight BIGINT NOT NULL, 
	number BIGINT NOT NULL, 
	lines INTEGER NOT NULL, 
	first_at BIGINT NOT NULL, 
	last_at BIGINT NOT NULL, 
	stored BIGINT NOT NULL, 
	kinds BLOB NOT NULL, 
	columns BLOB NOT NULL, 
	trigrams BLOB, 
	texts BLOB NOT NULL, 
	PRIMARY KEY (first_id)
);
CREATE TABLE log_tasks (
	task_id VARCHAR NOT NULL, 
	lines BIGINT NOT NULL, 
	PRIMARY KEY (task_id)
);
CREATE TABLE positions (
	owner VARCHAR NOT NULL, 
	stream VARCHAR NOT NULL, 
	position BIGINT NOT NULL, 
	PRIMARY KEY (owner, stream)
);
CREATE TABLE snapshots (
	owner VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	body BLOB NOT NULL, 
	root VARCHAR, 
	away SMALLINT DEFAULT '0' NOT NULL, 
	position BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (owner, kind, id)
);
CREATE TABLE strands (
	id BIGINT NOT NULL, 
	trial_id BIGINT NOT NULL, 
	run BIGINT NOT NULL, 
	kind VARCHAR NOT NULL, 
	merges BOOLEAN NOT NULL, 
	digest BLOB NOT NULL, 
	names BLOB NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE summaries (
	trial_id BIGINT NOT NULL, 
	kind VARCHAR NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (trial_id, kind)
);
CREATE TABLE trial_homes (
	trial_id BIGINT NOT NULL, 
	experiment_id BIGINT NOT NULL, 
	PRIMARY KEY (trial_id)
);
CREATE TABLE trials (
	trial_id BIGINT NOT NULL, 
	experiment_id BIGINT NOT NULL, 
	smaller_is_better BOOLEAN NOT NULL, 
	total_batches BIGINT NOT NULL, 
	PRIMARY KEY (trial_id)
);
CREATE TABLE validations (
	id BIGINT NOT NULL, 
	trial_id BIGINT NOT NULL, 
	run BIGINT NOT NULL, 
	steps BIGINT NOT NULL, 
	at FLOAT NOT NULL, 
	metrics BLOB NOT NULL, 
	ranked BOOLEAN NOT NULL, 
	metric FLOAT, 
	archived BOOLEAN NOT NULL, 
	PRIMARY KEY (id)
);
CREATE INDEX chunks_by_strand ON chunks (strand_id, level);
CREATE INDEX ix_trials_experiment_id ON trials (experiment_id);
CREATE INDEX log_chunks_by_age ON log_chunks (last_id);
CREATE INDEX log_chunks_in_order ON log_chunks (task_id, last_id);
CREATE INDEX log_chunks_open ON log_chunks (task_id, tier);
CREATE INDEX snapshots_loaded ON snapshots (owner) WHERE away = 0;
CREATE INDEX snapshots_of_root ON snapshots (owner, root);
CREATE INDEX strands_by_trial ON strands (trial_id, digest);
CREATE INDEX validations_by_metric ON validations (trial_id, archived, metric);
CREATE INDEX validations_by_steps ON validations (trial_id, run, steps);
INSERT INTO alembic_version VALUES ('0007');
