/**
 * What packages bring into the worker's bundle that nothing here reaches, cut out as it is bundled. A cut is written for
 * the version that package.json pins, and fails when it no longer finds what it is to cut.
 */

/** The text of a module, edited. Throws where it is not what the cut was written for. */
type Cut = (code: string) => string;

/** By path below node_modules. */
export const CUTS: Record<string, Cut> = {
  // Requests are written here and sent by `sdk-post.ts`: of the resources, models and embeddings alone are called.
  "openai/client.mjs": (code) =>
    without(
      code,
      /^ +this\.(?!models\b|embeddings\b)\w+ = new API\.\w+\(this\);\n/gm,
      /^OpenAI\.(?!Models\b|Embeddings\b)\w+ = \w+;\n/gm,
    ),
  // Certificates of machines, for clients that bring them as `workloadIdentity`.
  "openai/internal/auth/x509-workload-identity-auth.mjs": (code) => {
    const start = code.indexOf("\nexport class X509WorkloadIdentityAuth {\n");
    if (start === -1) throw new Error("There is no class X509WorkloadIdentityAuth.");
    return `${code.slice(0, start)}
export class X509WorkloadIdentityAuth {
  constructor() {
    throw new Error("The worker has no X.509 workload identities: use a key.");
  }
}
`;
  },
  // Of this client `models` alone is called, and of the models what makes text, speech and vectors.
  "@google/genai/dist/web/index.mjs": (code) =>
    withinClass("Models extends BaseModule", withinClass("GoogleGenAI", code, gemini), geminiModels),
  // Ajv writes functions as text, which workerd refuses. Clients and servers here name another validator.
  "@modelcontextprotocol/sdk/dist/esm/validation/ajv-provider.js": (code) => {
    without(code, /^export class AjvJsonSchemaValidator \{/gm);
    return `export class AjvJsonSchemaValidator {
  constructor() {
    throw new Error("The worker has no Ajv: pass a jsonSchemaValidator.");
  }
}
`;
  },
  // The parser alone is used.
  "htmlparser2/dist/esm/index.js": (code) => {
    without(code, /^export \{ Parser \} from "\.\/Parser\.js";\n/gm);
    return 'export { Parser } from "./Parser.js";\n';
  },
  // css-select brings it for a tree that is not linkedom's, and it brings the entities a second time.
  "dom-serializer/lib/esm/index.js": (code) => {
    without(code, /^export function render\(/gm);
    return `export function render() {
  throw new Error("The worker has no dom-serializer: linkedom writes its own trees.");
}
export default render;
`;
  },
  // Style sheets say nothing that is read here.
  "cssom/lib/index.js": (code) => {
    without(code, /^exports\.parse = require\('\.\/parse'\)\.parse;\n/gm);
    return "exports.parse = () => ({ cssRules: [] });\n";
  },
  // A package for Node that linkedom takes where somebody has it.
  "linkedom/commonjs/canvas.cjs": (code) => {
    without(code, /\brequire\('canvas'\)/g);
    return "module.exports = require('./canvas-shim.cjs');\n";
  },
};

function gemini(client: string): string {
  return without(
    client,
    /^ {4}(?:get \w+|getNextGenClient)\(\) \{\n[\s\S]*?^ {4}\}\n/gm,
    /^ +this\.(?!models\b|apiClient\b)\w+ = new \w+(?:\$\d+)?\(.*this\.apiClient.*\);\n/gm,
  );
}

function geminiModels(models: string): string {
  const uncalled = "(?:generateImages|editImage|upscaleImage|generateVideos)";
  return without(
    models,
    new RegExp(`^ {8}this\\.${uncalled} = async \\(params\\) => \\{\\n[\\s\\S]*?^ {8}\\};\\n`, "gm"),
    new RegExp(`^ {4}async ${uncalled}Internal\\(params\\) \\{\\n[\\s\\S]*?^ {4}\\}\\n`, "gm"),
    /^ {4}async (?:recontextImage|segmentImage|get|update|delete|computeTokens)\(params\) \{\n[\s\S]*?^ {4}\}\n/gm,
  );
}

/** Packages that do not say of themselves that a module nobody uses may go. None of their modules acts by being loaded. */
export const WITHOUT_SIDE_EFFECTS = ["openai"];

/** `code` with one of its classes edited. */
function withinClass(head: string, code: string, cut: Cut): string {
  const start = code.indexOf(`\nclass ${head} {\n`) + 1;
  const end = code.indexOf("\n}\n", start);
  if (start === 0 || end === -1) throw new Error(`There is no class ${head}.`);
  return code.slice(0, start) + cut(code.slice(start, end)) + code.slice(end);
}

function without(code: string, ...patterns: RegExp[]): string {
  return patterns.reduce((rest, pattern) => {
    const cut = rest.replace(pattern, "");
    if (cut === rest) throw new Error(`It holds no ${pattern}.`);
    return cut;
  }, code);
}
