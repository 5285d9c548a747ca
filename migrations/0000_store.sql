CREATE TABLE `file_chunks` (
	`owner` text NOT NULL,
	`path` text NOT NULL,
	`chunk` integer NOT NULL,
	`bytes` blob NOT NULL,
	PRIMARY KEY(`owner`, `path`, `chunk`),
	FOREIGN KEY (`owner`,`path`) REFERENCES `files`(`owner`,`path`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `files` (
	`owner` text NOT NULL,
	`path` text NOT NULL,
	`parent` text NOT NULL,
	`directory` integer NOT NULL,
	`size` integer NOT NULL,
	`mode` integer NOT NULL,
	`revision` text NOT NULL,
	`modified_at` integer NOT NULL,
	PRIMARY KEY(`owner`, `path`)
);
--> statement-breakpoint
CREATE INDEX `files_parent` ON `files` (`owner`,`parent`);--> statement-breakpoint
CREATE INDEX `files_size` ON `files` (`owner`,`size`);--> statement-breakpoint
CREATE TABLE `handed_back_calls` (
	`owner` text NOT NULL,
	`call_id` text NOT NULL,
	`context` text NOT NULL,
	`turn_id` text NOT NULL,
	PRIMARY KEY(`owner`, `call_id`, `context`),
	FOREIGN KEY (`turn_id`) REFERENCES `handed_back_turns`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `handed_back_calls_turn` ON `handed_back_calls` (`turn_id`);--> statement-breakpoint
CREATE TABLE `handed_back_pieces` (
	`owner` text NOT NULL,
	`turn_id` text NOT NULL,
	`piece` integer NOT NULL,
	`content` text NOT NULL,
	PRIMARY KEY(`turn_id`, `piece`),
	FOREIGN KEY (`turn_id`) REFERENCES `handed_back_turns`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `handed_back_turns` (
	`id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`context` text NOT NULL,
	`call_ids` text NOT NULL,
	`content` text NOT NULL,
	`pieces` integer NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `handed_back_turns_expiry` ON `handed_back_turns` (`expires_at`);--> statement-breakpoint
CREATE TABLE `message_pieces` (
	`owner` text NOT NULL,
	`message_id` text NOT NULL,
	`piece` integer NOT NULL,
	`content` text NOT NULL,
	PRIMARY KEY(`message_id`, `piece`),
	FOREIGN KEY (`message_id`) REFERENCES `messages`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE TABLE `messages` (
	`id` text PRIMARY KEY NOT NULL,
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
CREATE UNIQUE INDEX `messages_position` ON `messages` (`session_id`,`seq`);--> statement-breakpoint
CREATE TABLE `sessions` (
	`id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`label` text,
	`title` text NOT NULL,
	`last_seq` integer NOT NULL,
	`message_count` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `sessions_label` ON `sessions` (`owner`,`label`);--> statement-breakpoint
CREATE TABLE `usage` (
	`id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`run_id` text NOT NULL,
	`door` text NOT NULL,
	`provider` text NOT NULL,
	`model` text NOT NULL,
	`outcome` text NOT NULL,
	`steps` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cache_read_tokens` integer,
	`cache_write_tokens` integer,
	`reasoning_tokens` integer,
	`duration_ms` integer NOT NULL,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `usage_time` ON `usage` (`owner`,`created_at`);