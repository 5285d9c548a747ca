/** `drizzle-kit generate` compares src/store/schema*.ts with migrations/meta and writes the next migration. */
import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "sqlite",
  schema: "./src/store/schema*.ts",
  out: "./migrations",
});
