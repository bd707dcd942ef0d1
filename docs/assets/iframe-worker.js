/* Search in pages that are opened from the file system. Browsers allow no Worker there, so an iframe stands in for it. */
if (location.protocol === "file:") {
  window.IFrameWorker = window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.frame = frame;
      this.waiting = [];
      const inner = frame.contentWindow;
      const receive = data => {
        const event = new MessageEvent("message", { data });
        if (this.onmessage) this.onmessage(event);
        this.dispatchEvent(event);
      };
      inner.document.open();
      inner.document.write("<!doctype html><html><body></body></html>");
      inner.document.close();
      inner.postMessage = data => setTimeout(() => receive(data));
      inner.importScripts = (...files) => files.reduce((before, file) => before.then(() => load(file)), Promise.resolve());
      const load = file => new Promise((done, failed) => {
        const script = inner.document.createElement("script");
        script.src = file;
        script.onload = done;
        script.onerror = failed;
        inner.document.body.appendChild(script);
      });
      load(new URL(url, location).href).then(() => {
        const waiting = this.waiting;
        this.waiting = null;
        waiting.forEach(data => this.postMessage(data));
      });
    }
    postMessage(data) {
      if (this.waiting) return void this.waiting.push(data);
      const inner = this.frame.contentWindow;
      setTimeout(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
