import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/bench/**", "**/node_modules/**"],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    pool: "threads",
  },
});
