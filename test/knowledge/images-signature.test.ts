/** Against the vectors of AWS's own test suite for Signature Version 4, and its examples for S3. */
import { expect, test } from "vitest";
import { signRequest } from "../../src/knowledge/images-signature.ts";

const SUITE = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  region: "us-east-1",
  service: "service",
};
const S3 = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  region: "us-east-1",
};

test.each([
  ["get-vanilla", "GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"],
  [
    "get-vanilla-query-order-key-case",
    "GET",
    "/?Param2=value2&Param1=value1",
    "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
  ],
  ["post-vanilla", "POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"],
])("%s", async (_, method, path, signature) => {
  const url = new URL(`https://example.amazonaws.com${path}`);
  const headers = await signRequest({ method, url }, SUITE, new Date("2015-08-30T12:36:00.000Z"));
  expect(headers).toEqual({
    "x-amz-date": "20150830T123600Z",
    authorization: `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature=${signature}`,
  });
});

test("S3: part of an object", async () => {
  const url = new URL("https://examplebucket.s3.amazonaws.com/test.txt");
  const now = new Date("2013-05-24T00:00:00.000Z");
  const headers = await signRequest({ method: "GET", url, headers: { Range: "bytes=0-9" } }, S3, now);
  expect(headers["x-amz-content-sha256"]).toBe(
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  );
  expect(headers.authorization).toBe(
    "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  );
});

test("S3: storing an object", async () => {
  const url = new URL("https://examplebucket.s3.amazonaws.com/test%24file.text");
  const body = new TextEncoder().encode("Welcome to Amazon S3.");
  const given = { Date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" };
  const headers = await signRequest(
    { method: "PUT", url, body, headers: given },
    S3,
    new Date("2013-05-24T00:00:00.000Z"),
  );
  expect(headers.authorization).toMatch(
    /Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd$/,
  );
});

test("S3: a listing, with its query", async () => {
  const url = new URL("https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J");
  const headers = await signRequest({ method: "GET", url }, S3, new Date("2013-05-24T00:00:00.000Z"));
  expect(headers.authorization).toMatch(
    /Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7$/,
  );
});
