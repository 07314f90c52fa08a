// Pages that are opened from the disk may not start workers, and the search wants one: there a frame stands in for it.
if (location.protocol === "file:") {
  window.Worker = window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      frame.contentDocument.open()
      frame.contentDocument.write("<!doctype html><title>search</title><body></body>")
      frame.contentDocument.close()
      this.frame = frame
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.started = new Promise(done => {
        const script = frame.contentDocument.createElement("script")
        script.src = url
        script.onload = done
        frame.contentDocument.body.append(script)
      })
    }

    postMessage(data) {
      this.started.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
