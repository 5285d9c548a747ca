CREATE TABLE `automation_days` (
	`owner` text NOT NULL,
	`day` integer NOT NULL,
	`tokens` integer NOT NULL,
	`money` real NOT NULL,
	PRIMARY KEY(`owner`, `day`)
);
--> statement-breakpoint
CREATE TABLE `deliveries` (
	`job_id` text NOT NULL,
	`scheduled_at` integer NOT NULL,
	`owner` text NOT NULL,
	`url` text NOT NULL,
	`sealed_secret` text NOT NULL,
	`body` text NOT NULL,
	`status` text NOT NULL,
	`attempts` integer NOT NULL,
	`next_at` integer,
	`last_status` integer,
	`last_error` text,
	`created_at` integer NOT NULL,
	`ended_at` integer,
	PRIMARY KEY(`job_id`, `scheduled_at`),
	FOREIGN KEY (`job_id`,`scheduled_at`) REFERENCES `occurrences`(`job_id`,`scheduled_at`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `deliveries_due` ON `deliveries` (`next_at`) WHERE next_at IS NOT NULL;--> statement-breakpoint
CREATE TABLE `jobs` (
	`id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`command` text NOT NULL,
	`session` text NOT NULL,
	`agent_name` text,
	`provider` text,
	`model` text,
	`sealed_key` text,
	`allowed_tools` text,
	`approval` text NOT NULL,
	`webhook_url` text,
	`sealed_webhook_secret` text,
	`budget` text NOT NULL,
	`overlap` text NOT NULL,
	`max_runs` integer,
	`schedule` text,
	`misfire` text NOT NULL,
	`repeat_after_crash` integer NOT NULL,
	`target` text,
	`interval_ms` integer,
	`debounce_ms` integer,
	`cooldown_ms` integer,
	`check_state` text,
	`last_checked_at` integer,
	`last_fired_at` integer,
	`last_error` text,
	`fingerprint` text,
	`status` text NOT NULL,
	`reason` text,
	`runs_made` integer NOT NULL,
	`failures` integer NOT NULL,
	`tokens` integer NOT NULL,
	`money` real NOT NULL,
	`last_run_at` integer,
	`last_fate` text,
	`next_at` integer,
	`claimed_by` text,
	`claim_until` integer,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `jobs_due` ON `jobs` (`kind`,`status`,`next_at`);--> statement-breakpoint
CREATE INDEX `jobs_recent` ON `jobs` (`owner`,`kind`,`created_at`,`id`);--> statement-breakpoint
CREATE INDEX `jobs_not_done` ON `jobs` (`owner`) WHERE status <> 'done';--> statement-breakpoint
CREATE UNIQUE INDEX `jobs_fingerprint` ON `jobs` (`owner`,`fingerprint`) WHERE fingerprint IS NOT NULL;--> statement-breakpoint
CREATE TABLE `occurrences` (
	`job_id` text NOT NULL,
	`scheduled_at` integer NOT NULL,
	`owner` text NOT NULL,
	`until` integer,
	`count` integer NOT NULL,
	`trigger` text NOT NULL,
	`fate` text NOT NULL,
	`late` integer NOT NULL,
	`reason` text,
	`finding` text,
	`run_id` text,
	`session_id` text,
	`holder` text,
	`look_at` integer,
	`attempts` integer NOT NULL,
	`started_at` integer,
	`ended_at` integer,
	`tokens` integer NOT NULL,
	`money` real NOT NULL,
	`denied` text,
	PRIMARY KEY(`job_id`, `scheduled_at`),
	FOREIGN KEY (`job_id`) REFERENCES `jobs`(`id`) ON UPDATE no action ON DELETE cascade
);
--> statement-breakpoint
CREATE INDEX `occurrences_open` ON `occurrences` (`look_at`) WHERE look_at IS NOT NULL;--> statement-breakpoint
CREATE INDEX `occurrences_open_of` ON `occurrences` (`job_id`,`scheduled_at`) WHERE look_at IS NOT NULL;