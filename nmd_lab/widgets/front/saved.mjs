// What a saved file has in the place of a kernel: the record of a page.

import { h, made } from "./dom.mjs";
import { Local, decodedValues } from "./local.mjs";

const WEBP = "UklGR"; // how pictures that are compressed begin

const bytesOf = (text) => Uint8Array.from(atob(text), (each) => each.charCodeAt(0));

export class Recorded {
  constructor({ shown, blobs }, images = []) {
    Object.assign(this, { blobs, images });
    this.shown = this.revived(shown);
  }

  get(name) { return this.shown[name] ?? null; }

  /** Return a value with its bytes, which stand in it by number; those of many numbers are codes or a compressed picture. */
  revived(value) {
    if (Array.isArray(value)) return value.map((each) => this.revived(each));
    if (value?.constructor !== Object) return value;
    if ("blob" in value) return new DataView(bytesOf(this.blobs[value.blob]).buffer);
    if ("floats" in value) return new DataView(this.decoded(value.floats).buffer);
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.revived(each)]));
  }

  decoded({ low, high, codes, image, missing, channels }) {
    if (image) {
      const holes = missing && bytesOf(this.blobs[missing.blob]), pixels = this.images[image.blob], gain = (high - low) / 254;
      const size = (pixels.length / 4) * channels, isHole = (k) => holes && (holes[k >> 3] >> (7 - (k & 7))) & 1;
      return Float32Array.from({ length: size }, (_, k) => (isHole(k) ? NaN : low + gain * pixels[4 * Math.floor(k / channels) + (k % channels)]));
    }
    return decodedValues(bytesOf(this.blobs[codes.blob]), { low, high });
  }
}

async function pixelsOf(text) {
  const image = await createImageBitmap(new Blob([bytesOf(text)], { type: "image/webp" }), { colorSpaceConversion: "none" });
  const pen = made(h("canvas", { width: image.width, height: image.height })).getContext("2d");
  pen.drawImage(image, 0, 0);
  return pen.getImageData(0, 0, image.width, image.height).data;
}

export async function openRecord(render) {
  const packed = bytesOf(document.getElementById("record").textContent), el = document.getElementById("explorer");
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.documentElement.toggleAttribute("data-turned")); // which the page hears
  const record = await new Response(stream).json();
  const images = await Promise.all(record.blobs.map((text) => (text.startsWith(WEBP) ? pixelsOf(text) : null)));
  render({ model: new Local(new Recorded(record, images), true), el });
  el.querySelector(".nmd-gallery")?.toggleAttribute("inert", !record.shown.drawing?.shown && !record.shown.components?.answers);
}
