/** The program that the conformance suite starts for each scenario: it hands the task to the process that has our client. */
const [control = "", serverUrl = ""] = process.argv.slice(2);
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context = "{}" } = process.env;
const task = { scenario, serverUrl, context: JSON.parse(context) };
const response = await fetch(control, { method: "POST", body: JSON.stringify(task) });
process.stdout.write(await response.text());
