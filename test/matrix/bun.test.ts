import { matrix } from "./matrix.ts";

matrix("bun", 0);
