// Builds requests as another program does, for a differential check: swagger-client, which serialises by the document alone.
//
// The file that is named holds one JSON object, {"document": PATH, "calls": [{"operation": "GET /a/{b}", "arguments": {…}}, …]}.
// Standard output: one JSON object a line and call, {"method", "target", "headers", "type", "body"} or {"fault"};
// `headers` are those that are parameters.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.TOLLHOUSE_PEERS_FOLDER + "/");
const entry = require.resolve("swagger-client");
const loaded = await import(pathToFileURL(entry));
const SwaggerClient = loaded.default?.default ?? loaded.default ?? loaded;

const { document, calls } = JSON.parse(readFileSync(process.argv[2], "utf8"));
const spec = JSON.parse(readFileSync(document, "utf8"));
spec.servers = [{ url: "http://service.invalid" }];

const at = (reference) =>
  reference
    .slice(2)
    .split("/")
    .map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((value, step) => value?.[step], spec);
const followed = (value) => {
  let here = value;
  while (here && typeof here.$ref === "string") here = at(here.$ref);
  return here;
};

// Only what serialising looks at is put in the place of its references: parameters, bodies, and their own schemas.
for (const item of Object.values(spec.paths)) {
  for (const operation of [item, ...Object.values(item)]) {
    if (!operation || typeof operation !== "object") continue;
    if (Array.isArray(operation.parameters)) {
      operation.parameters = operation.parameters.map((parameter) => {
        const own = { ...followed(parameter) };
        if (own.schema) own.schema = followed(own.schema);
        return own;
      });
    }
    if (operation.requestBody) operation.requestBody = followed(operation.requestBody);
  }
}

for (const { operation, arguments: given } of calls) {
  const [method, path] = operation.split(" ");
  try {
    const item = spec.paths[path];
    const own = item[method.toLowerCase()];
    const parameters = [...(own.parameters ?? []), ...(item.parameters ?? [])];
    const names = new Set(parameters.map((parameter) => parameter.name));
    const values = Object.fromEntries(Object.entries(given).filter(([name]) => names.has(name)));
    const rest = Object.entries(given).filter(([name]) => !names.has(name));
    const options = { spec, pathName: path, method: method.toLowerCase(), parameters: values };
    // It finds an operation by its id alone.
    own.operationId ??= operation;
    options.operationId = own.operationId;
    if (own.requestBody) {
      const types = Object.keys(own.requestBody.content);
      options.requestContentType = types.find((type) => type === "application/json") ?? types[0];
      const schema = followed(own.requestBody.content[options.requestContentType]?.schema);
      const isWhole = rest.length === 1 && rest[0][0] === "body" && !schema?.properties?.body;
      if (isWhole) options.requestBody = rest[0][1];
      else if (rest.length > 0) options.requestBody = Object.fromEntries(rest);
    }
    const request = SwaggerClient.buildRequest(options);
    const body = typeof request.body === "string" ? request.body : request.body === undefined ? null : JSON.stringify(request.body);
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]));
    console.log(
      JSON.stringify({
        method: request.method,
        target: request.url.replace("http://service.invalid", ""),
        headers: Object.fromEntries(
          parameters
            .filter((parameter) => parameter.in === "header" && headers[parameter.name.toLowerCase()] !== undefined)
            .map((parameter) => [parameter.name.toLowerCase(), String(headers[parameter.name.toLowerCase()])]),
        ),
        type: headers["content-type"] ?? null,
        body,
      }),
    );
  } catch (error) {
    console.log(JSON.stringify({ fault: String(error.message ?? error).slice(0, 200) }));
  }
}
