// Builds requests as another program does, for a differential check: swagger-client, which serialises by the document alone.
//
// The file that is named holds one JSON object, {"document": PATH, "calls": [{"operation": "GET /a/{b}", "arguments": {…}}, …]}.
// Standard output: one JSON object a line and call, {"method", "target", "headers", "type", "body"} or {"fault"}; `headers` are
// those that are parameters, and `cookie` where a parameter is one; the body of a form of parts is a list of [name, file name, text].

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

// Where requests go and what credentials they carry is the operator's with us, so that it is left out here: servers of paths and of
// operations, and that a parameter which is a key of a security scheme has to be given.
const schemes = Object.values(spec.components?.securitySchemes ?? {}).map(followed);
const isKey = (parameter) =>
  schemes.some((scheme) => scheme?.type === "apiKey" && scheme.in === parameter.in && scheme.name === parameter.name);

// Only what serialising looks at is put in the place of its references: parameters, bodies, and their own schemas.
for (const item of Object.values(spec.paths)) {
  for (const operation of [item, ...Object.values(item)]) {
    if (!operation || typeof operation !== "object") continue;
    delete operation.servers;
    if (Array.isArray(operation.parameters)) {
      operation.parameters = operation.parameters.map((parameter) => {
        const own = { ...followed(parameter) };
        if (own.schema) own.schema = followed(own.schema);
        if (isKey(own)) own.required = false;
        return own;
      });
    }
    if (operation.requestBody) operation.requestBody = followed(operation.requestBody);
  }
}

// A body that is neither text nor of fields is bytes, and given in Base64.
const isBytes = (type) => !/^(text\/|multipart\/|\*)|json|xml|form-urlencoded/.test(type);

// What a caller gives for a file, as the object that this program takes for one.
const isFile = (value) => value !== null && typeof value === "object" && "base64" in value && "filename" in value;
const withFiles = (value) => {
  if (isFile(value)) return new File([Buffer.from(value.base64, "base64")], value.filename, { type: value.media_type });
  return Array.isArray(value) && value.some(isFile) ? value.map(withFiles) : value;
};
const partsOf = async (form) =>
  Promise.all(
    [...form].map(async ([name, value]) =>
      typeof value === "string" ? [name, null, value] : [name, value.name === "blob" ? null : value.name, await value.text()],
    ),
  );

for (const { operation, arguments: given } of calls) {
  const [method, path] = operation.split(" ");
  try {
    const item = spec.paths[path];
    const own = item[method.toLowerCase()];
    const parameters = [...(own.parameters ?? []), ...(item.parameters ?? [])];
    const names = new Set(parameters.filter((parameter) => !isKey(parameter)).map((parameter) => parameter.name));
    const placeOf = (name) => parameters.find((parameter) => parameter.name === name && !isKey(parameter)).in;
    const values = Object.fromEntries(
      Object.entries(given)
        .filter(([name]) => names.has(name))
        .map(([name, value]) => [`${placeOf(name)}.${name}`, value]),
    );
    const rest = Object.entries(given).filter(([name]) => !names.has(name));
    const options = { spec, pathName: path, method: method.toLowerCase(), parameters: values };
    // It finds an operation by its id alone.
    own.operationId ??= operation;
    options.operationId = own.operationId;
    if (own.requestBody) {
      const types = Object.keys(own.requestBody.content);
      options.requestContentType = types.find((type) => type === "application/json") ?? types[0];
      const schema = followed(own.requestBody.content[options.requestContentType]?.schema);
      // One argument `body` is the body, unless the body has such a field; of that, a caller gives the body as an object that has it.
      const isField = schema?.properties?.body && !rest[0]?.[1]?.body;
      const isWhole = rest.length === 1 && rest[0][0] === "body" && !isField;
      if (isWhole) options.requestBody = rest[0][1];
      else if (rest.length > 0) options.requestBody = Object.fromEntries(rest);
      if (isBytes(options.requestContentType) && typeof options.requestBody === "string") {
        options.requestBody = Buffer.from(options.requestBody, "base64");
      }
      if (options.requestContentType === "multipart/form-data" && options.requestBody) {
        const fields = Object.entries(options.requestBody);
        options.requestBody = Object.fromEntries(fields.map(([name, value]) => [name, withFiles(value)]));
      }
    }
    const request = SwaggerClient.buildRequest(options);
    const written = request.body instanceof FormData ? await partsOf(request.body) : request.body;
    const body = typeof written === "string" ? written : written instanceof Uint8Array ? Buffer.from(written).toString() : written === undefined ? null : JSON.stringify(written);
    const headers = Object.fromEntries(Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value]));
    console.log(
      JSON.stringify({
        method: request.method,
        target: request.url.replace("http://service.invalid", ""),
        headers: Object.fromEntries(
          parameters
            .map((parameter) => (parameter.in === "cookie" ? "cookie" : parameter.in === "header" ? parameter.name.toLowerCase() : null))
            // Parameters of these names say nothing (OpenAPI 3.1.1 section 4.8.12.1).
            .filter((name) => name !== null && name !== "accept" && name !== "content-type" && headers[name] !== undefined)
            .map((name) => [name, String(headers[name])]),
        ),
        type: headers["content-type"] ?? null,
        body,
      }),
    );
  } catch (error) {
    console.log(JSON.stringify({ fault: String(error.message ?? error).slice(0, 200) }));
  }
}
