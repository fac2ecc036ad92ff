//! The MCP face on standard input and output: one message a line, each line no longer than a limit.

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, BufWriter, Stdout};

use crate::echo::Echo;
use crate::mcp::{self, Reply};

/// The longest line. A longer one ends the process, because what follows it cannot be trusted to be a message.
const LINE_BYTES_MAX: u64 = 64 << 20;

/// Serves until the input ends.
///
/// Messages are answered in order, one at a time: a delay holds up those behind it.
pub(crate) async fn serve(echo: &Echo) -> anyhow::Result<()> {
    let mut input = BufReader::with_capacity(64 << 10, tokio::io::stdin());
    let mut output = BufWriter::with_capacity(64 << 10, tokio::io::stdout());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut input)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
            .await
            .context("standard input broke")?;
        if read == 0 {
            return Ok(());
        }
        if line.pop_if(|last| *last == b'\n').is_none() {
            bail!("a line has no end within {LINE_BYTES_MAX} bytes");
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let reply = mcp::answer(echo, &line, None);
        write(echo, &mut output, &reply).await?;
    }
}

async fn write(echo: &Echo, output: &mut BufWriter<Stdout>, reply: &Reply) -> anyhow::Result<()> {
    if let Some(token) = &reply.progress {
        let total = echo.shape().events;
        for n in 1..=total {
            let event = format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":\
                 {{\"progressToken\":{token},\"progress\":{n},\"total\":{total}}}}}\n"
            );
            output.write_all(event.as_bytes()).await?;
        }
    }
    if reply.body.is_empty() {
        return Ok(());
    }
    if !echo.shape().delay.is_zero() {
        output.flush().await?;
        tokio::time::sleep(echo.shape().delay).await;
    }
    output.write_all(&reply.body).await?;
    output.write_all(b"\n").await?;
    output.flush().await?;
    Ok(())
}
