CREATE TABLE `agents` (
	`id` text PRIMARY KEY NOT NULL,
	`owner` text NOT NULL,
	`name` text NOT NULL,
	`description` text NOT NULL,
	`instructions` text NOT NULL,
	`provider` text,
	`model` text,
	`tools` text,
	`policy` text NOT NULL,
	`sub_agents` text NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `agents_name` ON `agents` (`owner`,`name`);--> statement-breakpoint
CREATE INDEX `agents_time` ON `agents` (`owner`,`created_at`,`id`);--> statement-breakpoint
ALTER TABLE `runs` ADD `root` text;--> statement-breakpoint
CREATE INDEX `runs_members` ON `runs` (`root`,`created_at`) WHERE root IS NOT NULL;--> statement-breakpoint
CREATE INDEX `runs_open_members` ON `runs` (`root`) WHERE root IS NOT NULL AND status IN ('running', 'paused');