import { matrix } from "./matrix.ts";

matrix("node", null);
