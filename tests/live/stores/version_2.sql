-- A store of version 2, as it was made then, with some rows; types as in schema.py.
CREATE TABLE meta (name TEXT PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE counter (id INTEGER PRIMARY KEY, position INTEGER NOT NULL, at REAL NOT NULL);
INSERT INTO counter VALUES (1, 0, 0.0);
CREATE TABLE decisions (
    position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, at REAL NOT NULL, unit TEXT, arm TEXT NOT NULL,
    version INTEGER NOT NULL, draw INTEGER NOT NULL, digest BYTES NOT NULL, context BYTES, question TEXT NOT NULL,
    actions TEXT NOT NULL, propensity REAL, arm_propensity REAL, inclusion REAL, propensity_kind TEXT, details TEXT NOT NULL,
    erased INTEGER NOT NULL, active INTEGER NOT NULL DEFAULT 1);
CREATE INDEX decisions_by_unit ON decisions (unit, version);
CREATE INDEX decisions_by_version ON decisions (version);
CREATE INDEX decisions_by_time ON decisions (at);
CREATE TABLE units (unit INTEGER PRIMARY KEY);
CREATE TABLE rewards (
    position INTEGER PRIMARY KEY, decision INTEGER NOT NULL, action INTEGER NOT NULL, id TEXT NOT NULL,
    value REAL NOT NULL, at REAL NOT NULL, UNIQUE (decision, action, id));
CREATE TABLE operations (position INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE chunks (
    version INTEGER PRIMARY KEY, upto INTEGER NOT NULL, due INTEGER NOT NULL, at REAL NOT NULL, token INTEGER NOT NULL);
CREATE TABLE snapshots (
    version INTEGER PRIMARY KEY, upto INTEGER NOT NULL, writing TEXT NOT NULL, parts INTEGER NOT NULL, sha256 TEXT NOT NULL,
    at REAL NOT NULL, origin INTEGER NOT NULL);
CREATE TABLE snapshot_parts (writing TEXT NOT NULL, part INTEGER NOT NULL, body BYTES NOT NULL, PRIMARY KEY (writing, part));
CREATE TABLE propensities (
    decision INTEGER PRIMARY KEY, propensity REAL NOT NULL, arm_propensity REAL NOT NULL, inclusion REAL NOT NULL,
    error REAL NOT NULL, draws INTEGER NOT NULL);
CREATE TABLE leases (name TEXT PRIMARY KEY, holder TEXT NOT NULL, token INTEGER NOT NULL, expires REAL NOT NULL);
INSERT INTO meta VALUES ('schema_version', '2');
INSERT INTO meta VALUES ('settings', '{}');
INSERT INTO decisions VALUES (1, 'first', 1700000000.25, 'user 1', 'main', 0, 42, CAST('digest' AS BYTES), NULL, '{}', '[3]', 0.5, 0.5, 0.5, 'exact',
    '{}', 0, 1);
INSERT INTO decisions VALUES (2, 'second', 1700000001.5, NULL, 'main', 0, 4611686018427387903, CAST('digest' AS BYTES), CAST('context' AS BYTES), '{}',
    '[7, 1]', NULL, NULL, NULL, NULL, '{}', 0, 1);
INSERT INTO rewards VALUES (3, 1, 3, 'r', 1.0, 1700000002.0);
INSERT INTO operations VALUES (4, 1700000002.0, 'note', '{}');
INSERT INTO chunks VALUES (1, 4, 0, 1700000003.0, 1);
UPDATE counter SET position = 4, at = 1700000003.0;
