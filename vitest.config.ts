import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    exclude: ["test/bench/**", "**/node_modules/**"],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    pool: "threads",
    // Many files wait for processes of their own; one worker would leave a core without work.
    maxWorkers: 2,
  },
});
