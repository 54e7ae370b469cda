CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE audit (
	position BIGINT NOT NULL, 
	at FLOAT NOT NULL, 
	username VARCHAR NOT NULL, 
	event VARCHAR NOT NULL, 
	about VARCHAR NOT NULL, 
	what VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	PRIMARY KEY (position)
);
CREATE TABLE checkpoints (
	uuid VARCHAR NOT NULL, 
	trial_id INTEGER NOT NULL, 
	experiment_id INTEGER NOT NULL, 
	steps BIGINT NOT NULL, 
	stored_at FLOAT NOT NULL, 
	state VARCHAR NOT NULL, 
	metric FLOAT, 
	PRIMARY KEY (uuid)
);
CREATE TABLE experiments (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	description VARCHAR NOT NULL, 
	labels VARCHAR NOT NULL, 
	username VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	shown_state VARCHAR NOT NULL, 
	pool VARCHAR NOT NULL, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT, 
	parent_id INTEGER, 
	trials INTEGER NOT NULL, 
	metric FLOAT, 
	checkpoints INTEGER NOT NULL, 
	checkpoint_bytes BIGINT NOT NULL, archived BOOLEAN DEFAULT 0 NOT NULL, project_id INTEGER DEFAULT 1 NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE positions (
	owner VARCHAR NOT NULL, 
	stream VARCHAR NOT NULL, 
	position BIGINT NOT NULL, 
	PRIMARY KEY (owner, stream)
);
CREATE TABLE runs (
	id VARCHAR NOT NULL, 
	started_at FLOAT NOT NULL, 
	until FLOAT NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (id)
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
CREATE TABLE trials (
	id INTEGER NOT NULL, 
	experiment_id INTEGER NOT NULL, 
	state VARCHAR NOT NULL, 
	shown_state VARCHAR NOT NULL, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT, 
	restarts INTEGER NOT NULL, 
	steps BIGINT NOT NULL, 
	best_metric FLOAT, 
	latest_metric FLOAT, 
	checkpoint_bytes BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE unreadable (
	position BIGINT NOT NULL, 
	subject VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	PRIMARY KEY (position)
);
CREATE TABLE usage_days (
	day INTEGER NOT NULL, 
	experiment_id BIGINT NOT NULL, 
	task_id VARCHAR NOT NULL, 
	pool VARCHAR NOT NULL, 
	slot_us BIGINT NOT NULL, 
	PRIMARY KEY (day, experiment_id, task_id, pool)
);
CREATE INDEX audit_by_thing ON audit (about, position);
CREATE INDEX audit_by_user ON audit (username, position);
CREATE INDEX experiments_by_archived ON experiments (archived, id);
CREATE INDEX experiments_by_project ON experiments (project_id, archived, id);
CREATE INDEX ix_audit_at ON audit (at);
CREATE INDEX ix_checkpoints_experiment_id ON checkpoints (experiment_id);
CREATE INDEX ix_checkpoints_trial_id ON checkpoints (trial_id);
CREATE INDEX ix_experiments_shown_state ON experiments (shown_state);
CREATE INDEX ix_experiments_state ON experiments (state);
CREATE INDEX ix_experiments_username ON experiments (username);
CREATE INDEX ix_runs_until ON runs (until);
CREATE INDEX ix_trials_experiment_id ON trials (experiment_id);
CREATE INDEX runs_by_start ON runs (started_at, id, until);
CREATE INDEX snapshots_loaded ON snapshots (owner) WHERE away = 0;
CREATE INDEX snapshots_of_root ON snapshots (owner, root);
INSERT INTO alembic_version VALUES ('0011');
