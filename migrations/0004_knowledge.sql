CREATE TABLE `image_chunks` (
	`owner` text NOT NULL,
	`image_id` text NOT NULL,
	`chunk` integer NOT NULL,
	`bytes` blob NOT NULL,
	PRIMARY KEY(`image_id`, `chunk`),
	FOREIGN KEY (`image_id`) REFERENCES `images`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `images` (
	`id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`state` text NOT NULL,
	`type` text NOT NULL,
	`size` integer NOT NULL,
	`width` integer NOT NULL,
	`height` integer NOT NULL,
	`sha256` text NOT NULL,
	`store` text NOT NULL,
	`created_at` integer NOT NULL,
	`unused_since` integer
);
--> statement-breakpoint
CREATE INDEX `images_unused` ON `images` (`unused_since`) WHERE unused_since IS NOT NULL;--> statement-breakpoint
CREATE TABLE `memories` (
	`row` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`owner` text NOT NULL,
	`document` text NOT NULL,
	`slot` text NOT NULL,
	`value` text NOT NULL,
	`category` text NOT NULL,
	`importance` real NOT NULL,
	`origin` text NOT NULL,
	`outside` integer NOT NULL,
	`source_session_id` text,
	`source_message_id` text,
	`quote` text,
	`seen_count` integer NOT NULL,
	`last_seen_at` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`valid_to` integer,
	`superseded_by` text,
	`embedded` text DEFAULT '' NOT NULL,
	`embedding_until` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `memories_id_unique` ON `memories` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `memories_slot` ON `memories` (`owner`,`slot`) WHERE valid_to IS NULL;--> statement-breakpoint
CREATE INDEX `memories_recent` ON `memories` (`owner`,`created_at`,`id`) WHERE valid_to IS NULL;--> statement-breakpoint
CREATE INDEX `memories_category` ON `memories` (`owner`,`category`,`created_at`,`id`) WHERE valid_to IS NULL;--> statement-breakpoint
CREATE INDEX `memories_important` ON `memories` (`owner`,`importance`,`last_seen_at`) WHERE valid_to IS NULL;--> statement-breakpoint
CREATE INDEX `memories_superseded` ON `memories` (`superseded_by`) WHERE superseded_by IS NOT NULL;--> statement-breakpoint
CREATE INDEX `memories_session` ON `memories` (`source_session_id`) WHERE source_session_id IS NOT NULL;--> statement-breakpoint
CREATE INDEX `memories_owner` ON `memories` (`owner`,`row`);--> statement-breakpoint
CREATE INDEX `memories_embedded` ON `memories` (`embedded`,`embedding_until`) WHERE valid_to IS NULL;--> statement-breakpoint
CREATE INDEX `memories_progress` ON `memories` (`owner`,`embedded`) WHERE valid_to IS NULL;--> statement-breakpoint
CREATE TABLE `memory_extractions` (
	`session_id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`up_to` integer NOT NULL,
	`provider` text NOT NULL,
	`model` text NOT NULL,
	`sealed_key` text,
	`callers_key` integer NOT NULL,
	`attempts` integer NOT NULL,
	`due_at` integer,
	`holder` text
);
--> statement-breakpoint
CREATE INDEX `memory_extractions_due` ON `memory_extractions` (`due_at`) WHERE due_at IS NOT NULL;--> statement-breakpoint
CREATE TABLE `memory_recalls` (
	`session_id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`content` text NOT NULL,
	`memory_ids` text NOT NULL,
	`made_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `memory_vectors` (
	`memory_row` integer PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`model` text NOT NULL,
	`vector` blob NOT NULL,
	FOREIGN KEY (`memory_row`) REFERENCES `memories`(`row`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `memory_vectors_owner` ON `memory_vectors` (`owner`,`model`,`memory_row`);--> statement-breakpoint
CREATE TABLE `note_images` (
	`owner` text NOT NULL,
	`note_id` text NOT NULL,
	`image_id` text NOT NULL,
	PRIMARY KEY(`note_id`, `image_id`),
	FOREIGN KEY (`note_id`) REFERENCES `notes`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `note_images_image` ON `note_images` (`image_id`);--> statement-breakpoint
CREATE TABLE `notes` (
	`row` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`owner` text NOT NULL,
	`title` text NOT NULL,
	`category` text NOT NULL,
	`version` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`size` integer NOT NULL,
	`content` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `notes_id_unique` ON `notes` (`id`);--> statement-breakpoint
CREATE INDEX `notes_recent` ON `notes` (`owner`,`updated_at`,`id`);--> statement-breakpoint
CREATE INDEX `notes_category` ON `notes` (`owner`,`category`,`updated_at`,`id`);--> statement-breakpoint
CREATE VIRTUAL TABLE `memory_index` USING fts5(owner, content, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');
--> statement-breakpoint
INSERT INTO `memory_index` (`memory_index`, `rank`) VALUES ('deletemerge', 0);
--> statement-breakpoint
CREATE TRIGGER `memories_deleted` AFTER DELETE ON `memories` BEGIN DELETE FROM `memory_index` WHERE rowid = old.row; END;
--> statement-breakpoint
CREATE TRIGGER `memories_past` AFTER UPDATE OF `valid_to` ON `memories` WHEN new.valid_to IS NOT NULL BEGIN DELETE FROM `memory_index` WHERE rowid = new.row; DELETE FROM `memory_vectors` WHERE memory_row = new.row; END;
--> statement-breakpoint
CREATE TRIGGER `memories_receipts` AFTER DELETE ON `sessions` BEGIN UPDATE `memories` SET source_session_id = NULL, source_message_id = NULL WHERE source_session_id = old.id; DELETE FROM `memory_recalls` WHERE session_id = old.id; DELETE FROM `memory_extractions` WHERE session_id = old.id; END;
--> statement-breakpoint
CREATE VIRTUAL TABLE `notes_index` USING fts5(owner, category, title, content, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3');
--> statement-breakpoint
CREATE TRIGGER `notes_index_insert` AFTER INSERT ON `notes` BEGIN INSERT INTO `notes_index` (rowid, owner, category, title, content) VALUES (new.row, 'o' || hex(new.owner), 'c' || hex(new.category), new.title, substr(new.content, 1, 131072)); END;
--> statement-breakpoint
CREATE TRIGGER `notes_index_update` AFTER UPDATE ON `notes` BEGIN DELETE FROM `notes_index` WHERE rowid = old.row; INSERT INTO `notes_index` (rowid, owner, category, title, content) VALUES (new.row, 'o' || hex(new.owner), 'c' || hex(new.category), new.title, substr(new.content, 1, 131072)); END;
--> statement-breakpoint
CREATE TRIGGER `notes_index_delete` AFTER DELETE ON `notes` BEGIN DELETE FROM `notes_index` WHERE rowid = old.row; END;
