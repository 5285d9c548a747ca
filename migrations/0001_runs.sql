CREATE TABLE `idempotency_keys` (
	`owner` text NOT NULL,
	`key` text NOT NULL,
	`fingerprint` text NOT NULL,
	`expires_at` integer NOT NULL,
	`status` integer,
	`headers` text,
	`body` text,
	`pieces` integer,
	PRIMARY KEY(`owner`, `key`)
);
--> statement-breakpoint
CREATE INDEX `idempotency_keys_expiry` ON `idempotency_keys` (`expires_at`);--> statement-breakpoint
CREATE TABLE `idempotency_pieces` (
	`owner` text NOT NULL,
	`key` text NOT NULL,
	`piece` integer NOT NULL,
	`content` text NOT NULL,
	PRIMARY KEY(`owner`, `key`, `piece`),
	FOREIGN KEY (`owner`,`key`) REFERENCES `idempotency_keys`(`owner`,`key`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `run_calls` (
	`owner` text NOT NULL,
	`run_id` text NOT NULL,
	`session_id` text NOT NULL,
	`call_id` text NOT NULL,
	`step` integer NOT NULL,
	`position` integer NOT NULL,
	`name` text NOT NULL,
	`args` text NOT NULL,
	`args_pieces` integer NOT NULL,
	`risk` text NOT NULL,
	`state` text NOT NULL,
	`code_hash` text,
	`expires_at` integer,
	`decided_at` integer,
	`result` text,
	`result_pieces` integer NOT NULL,
	PRIMARY KEY(`run_id`, `call_id`),
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `run_calls_session` ON `run_calls` (`session_id`,`call_id`);--> statement-breakpoint
CREATE INDEX `run_calls_pending` ON `run_calls` (`session_id`) WHERE state = 'pending';--> statement-breakpoint
CREATE INDEX `run_calls_expiry` ON `run_calls` (`expires_at`) WHERE state = 'pending';--> statement-breakpoint
CREATE INDEX `run_calls_decided` ON `run_calls` (`decided_at`) WHERE result IS NULL AND state IN ('allowed', 'denied');--> statement-breakpoint
CREATE INDEX `run_calls_code` ON `run_calls` (`code_hash`) WHERE code_hash IS NOT NULL;--> statement-breakpoint
CREATE TABLE `run_frames` (
	`owner` text NOT NULL,
	`run_id` text NOT NULL,
	`first` integer NOT NULL,
	`last` integer NOT NULL,
	`content` text NOT NULL,
	`pieces` integer NOT NULL,
	PRIMARY KEY(`run_id`, `last`),
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `run_pieces` (
	`owner` text NOT NULL,
	`run_id` text NOT NULL,
	`part` text NOT NULL,
	`piece` integer NOT NULL,
	`content` text NOT NULL,
	PRIMARY KEY(`run_id`, `part`, `piece`),
	FOREIGN KEY (`run_id`) REFERENCES `runs`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `runs` (
	`id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`session_id` text NOT NULL,
	`status` text NOT NULL,
	`spec` text NOT NULL,
	`spec_pieces` integer NOT NULL,
	`sealed_key` text,
	`lease_holder` text,
	`lease_until` integer,
	`stop_asked` integer NOT NULL,
	`history_seq` integer NOT NULL,
	`steps` integer NOT NULL,
	`last_event` integer NOT NULL,
	`recoveries` integer NOT NULL,
	`usage` text NOT NULL,
	`stop` text,
	`fault` text,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`ended_at` integer,
	`frames_first` integer,
	`frames` text,
	FOREIGN KEY (`session_id`) REFERENCES `sessions`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `runs_time` ON `runs` (`owner`,`created_at`,`id`);--> statement-breakpoint
CREATE INDEX `runs_session` ON `runs` (`session_id`,`created_at`,`id`);--> statement-breakpoint
CREATE INDEX `runs_lease` ON `runs` (`lease_holder`,`lease_until`) WHERE status = 'running';--> statement-breakpoint
CREATE TABLE `session_grants` (
	`owner` text NOT NULL,
	`session_id` text NOT NULL,
	`position` integer NOT NULL,
	`rule` text NOT NULL,
	PRIMARY KEY(`session_id`, `position`),
	FOREIGN KEY (`session_id`) REFERENCES `sessions`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `session_summaries` (
	`owner` text NOT NULL,
	`session_id` text NOT NULL,
	`up_to` integer NOT NULL,
	`content` text NOT NULL,
	PRIMARY KEY(`session_id`, `up_to`),
	FOREIGN KEY (`session_id`) REFERENCES `sessions`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `__new_messages` (
	`row` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`owner` text NOT NULL,
	`session_id` text NOT NULL,
	`seq` integer NOT NULL,
	`role` text NOT NULL,
	`content` text NOT NULL,
	`pieces` integer NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`session_id`) REFERENCES `sessions`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
INSERT INTO `__new_messages`("id", "owner", "session_id", "seq", "role", "content", "pieces", "created_at") SELECT "id", "owner", "session_id", "seq", "role", "content", "pieces", "created_at" FROM `messages` ORDER BY rowid;--> statement-breakpoint
DROP TABLE `messages`;--> statement-breakpoint
ALTER TABLE `__new_messages` RENAME TO `messages`;--> statement-breakpoint
CREATE UNIQUE INDEX `messages_id_unique` ON `messages` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `messages_position` ON `messages` (`session_id`,`seq`);--> statement-breakpoint
CREATE TABLE `__new_sessions` (
	`row` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`owner` text NOT NULL,
	`label` text,
	`title` text NOT NULL,
	`last_seq` integer NOT NULL,
	`message_count` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`unlisted` integer DEFAULT 0 NOT NULL,
	`turn` text
);
--> statement-breakpoint
INSERT INTO `__new_sessions`("id", "owner", "label", "title", "last_seq", "message_count", "created_at", "updated_at") SELECT "id", "owner", "label", "title", "last_seq", "message_count", "created_at", "updated_at" FROM `sessions` ORDER BY rowid;--> statement-breakpoint
DROP TABLE `sessions`;--> statement-breakpoint
ALTER TABLE `__new_sessions` RENAME TO `sessions`;--> statement-breakpoint
CREATE UNIQUE INDEX `sessions_id_unique` ON `sessions` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `sessions_label` ON `sessions` (`owner`,`label`) WHERE label IS NOT NULL;--> statement-breakpoint
CREATE INDEX `sessions_recent` ON `sessions` (`owner`,`updated_at`,`id`) WHERE unlisted = 0;--> statement-breakpoint
CREATE VIRTUAL TABLE `search_index` USING fts5(owner, content, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');--> statement-breakpoint
CREATE TRIGGER `messages_search` AFTER DELETE ON `messages` BEGIN DELETE FROM `search_index` WHERE rowid = old.row; END;--> statement-breakpoint
CREATE TRIGGER `sessions_search` AFTER DELETE ON `sessions` BEGIN DELETE FROM `search_index` WHERE rowid = -old.row; END;
