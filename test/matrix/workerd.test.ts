import { matrix } from "./matrix.ts";

matrix("workerd", 1);
