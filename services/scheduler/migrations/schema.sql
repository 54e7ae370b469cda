CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
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
CREATE INDEX snapshots_loaded ON snapshots (owner) WHERE away = 0;
CREATE INDEX snapshots_of_root ON snapshots (owner, root);
INSERT INTO alembic_version VALUES ('0006');
