CREATE TABLE `mcp_owners` (
	`owner` text PRIMARY KEY NOT NULL,
	`revision` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `mcp_owners_revision` ON `mcp_owners` (`revision`);--> statement-breakpoint
CREATE TABLE `mcp_servers` (
	`owner` text NOT NULL,
	`id` text NOT NULL,
	`name` text NOT NULL,
	`transport` text NOT NULL,
	`command` text,
	`args` text NOT NULL,
	`url` text,
	`tools` text NOT NULL,
	`sealed` text,
	`oauth` text,
	`oauth_state` text,
	`lease_holder` text,
	`lease_until` integer,
	`active` integer NOT NULL,
	`last_error` text,
	`needs_reauth` integer NOT NULL,
	`created_at` integer NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`owner`, `id`)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `mcp_servers_oauth_state` ON `mcp_servers` (`oauth_state`) WHERE oauth_state IS NOT NULL;--> statement-breakpoint
CREATE TABLE `mcp_tools` (
	`owner` text NOT NULL,
	`server_id` text NOT NULL,
	`name` text NOT NULL,
	`position` integer NOT NULL,
	`definition` text,
	`hash` text,
	`held` text,
	`held_hash` text,
	`listed` integer NOT NULL,
	PRIMARY KEY(`owner`, `server_id`, `name`),
	FOREIGN KEY (`owner`,`server_id`) REFERENCES `mcp_servers`(`owner`,`id`) ON UPDATE no action ON DELETE cascade
);
