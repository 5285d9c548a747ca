/**
 * An embedding model that is a small server: deterministic, and with an idea of meaning, which is a thesaurus. It stands for
 * a real model in shape and in kind, not in quality.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const DIMENSIONS = 256;
/** Words of one meaning share a direction; a word in several lines is between them. */
const MEANINGS = `
live lives home city town moved based located reside flat where
work works job employ employs employer company profession living engineer office
name named called nickname
birthday born birth old years age date
husband wife married partner tomasz spouse
daughter girl child son mila jonas kids family
dog cat pet animal
allergic allergy allergies avoid nuts hazelnuts
diet eat eats vegan vegetarian meat food dish cook dinner
coffee tea drink drinks morning breakfast beverage espresso
favourite favorite likes like enjoy enjoys love
band music group song portishead choir sing sings voice alto piano
book novel reading read reads novels
climb climbs climbing boulder sport run runs running marathon km ski
language languages speaks speak spanish german polish english learning
mail email address write hello
phone telephone number call
manager boss lead leads supervisor
editor text neovim zed helix emacs
shell zsh fish terminal
laptop computer operating system os fedora
car automobile drive drives volvo
bike bicycle cargo rides ride
port gateway listens
budget money euros much cost costs price rent savings month monthly currency
database postgresql cockroachdb store
hosted runs cluster server hetzner ovh
customer client authority nordhafen
outage incident caused failure
holiday vacation august island travel trip lisbon flight flies stays guesthouse hotel pack
mother father sister parents relative
doctor physician dentist health insurance blood type
plants garden balcony tomatoes vegetables grows waters
photographs photo pictures camera leica
film movie
train railway bahncard card trains
taxes tax return haller
present gift wishes wrench
flour sourdough bread bake bakes recipe
herb coriander stand hate hates dislikes
afraid fear phobia moths
password passwords bitwarden secret
calendar shared standup meeting when time
answers replies short long
commit commits message messages pull request
tests test run vitest
celsius fahrenheit temperature temperatures units
tabs spaces indent format
`
  .trim()
  .split("\n")
  .map((line) => line.split(" "));

export interface EmbeddingServer {
  url: string;
  requests: { path: string; authorization: string | undefined; texts: number }[];
  /** Answers with this status from here on; 200 is well. */
  status: number;
  close(): Promise<void>;
}

/** Speaks OpenAI's `/embeddings` and Gemini's `:batchEmbedContents`. */
export async function startEmbeddingServer(): Promise<EmbeddingServer> {
  const out: EmbeddingServer = { url: "", requests: [], status: 200, close: async () => {} };
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    const asked = JSON.parse(body);
    const gemini = request.url?.includes("batchEmbedContents");
    const texts: string[] = gemini
      ? asked.requests.map((each: { content: { parts: { text: string }[] } }) => each.content.parts[0]?.text)
      : asked.input;
    const { authorization, "x-goog-api-key": key } = request.headers;
    out.requests.push({
      path: request.url ?? "",
      authorization: authorization ?? String(key),
      texts: texts.length,
    });
    response.writeHead(out.status, { "content-type": "application/json" });
    if (out.status !== 200) {
      response.end(JSON.stringify({ error: { message: "The model is overloaded.", code: out.status } }));
      return;
    }
    const vectors = texts.map((text) => vectorOf(text));
    response.end(
      JSON.stringify(
        gemini
          ? { embeddings: vectors.map((values) => ({ values })) }
          : { data: vectors.map((embedding, index) => ({ index, embedding })), model: asked.model },
      ),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  out.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  out.close = () => new Promise((resolve) => server.close(() => resolve()));
  return out;
}

export function vectorOf(text: string): number[] {
  const vector = new Float64Array(DIMENSIONS);
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  for (const word of words) {
    if (
      word.length < 3 ||
      /^(?:the|user|and|does|which|what|with|his|her|for|has|was|who|how|user's)$/.test(word)
    )
      continue;
    add(vector, `word ${word.replace(/(?:s|ed|ing)$/, "")}`, 1);
    for (const [at, line] of MEANINGS.entries()) if (line.includes(word)) add(vector, `meaning ${at}`, 0.8);
  }
  const length = Math.hypot(...vector) || 1;
  return Array.from(vector, (value) => Number((value / length).toFixed(6)));
}

/** A direction of its own for each word, nearly at right angles to all others. */
function add(vector: Float64Array, name: string, weight: number): void {
  let state = 2_166_136_261;
  for (const character of name)
    state = Math.imul(state ^ (character.codePointAt(0) as number), 16_777_619) >>> 0;
  for (let at = 0; at < 12; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    vector[(state >>> 8) % DIMENSIONS]! += (state & 1 ? weight : -weight) / Math.sqrt(12);
  }
}
